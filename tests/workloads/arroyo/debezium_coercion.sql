-- As published.
SELECT counter FROM impulse
