"""VALUES: rows of constants, whatever is below."""
