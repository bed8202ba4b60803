"""Topic segments to a table of records in Parquet or Delta, checked record by record."""
