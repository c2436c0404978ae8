"""PostgreSQL's wire protocol as a door of the broker: psql, drivers and BI tools ask and register by it."""
