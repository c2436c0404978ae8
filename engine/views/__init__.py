"""What readers get: views, and the answers that they work out."""
