"""The lake of history: its tables, how they become visible at once, and questions to them."""
