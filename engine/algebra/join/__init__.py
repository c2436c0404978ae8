"""JOIN of all kinds, ASOF too."""
