"""HAVING, and a WHERE above other stages."""
