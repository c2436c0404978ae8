"""What readers get."""
