"""Values of logical types: their canonical texts, and these as Arrow and back."""
