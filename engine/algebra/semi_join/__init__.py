"""IN and EXISTS, NOT IN and NOT EXISTS."""
