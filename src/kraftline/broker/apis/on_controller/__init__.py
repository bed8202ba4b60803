"""What a controller's listener answers itself, a module per API."""
