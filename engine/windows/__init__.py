"""Which rows of a stream a query sees at an instant: clauses, NOW, expiry."""
