-- Published as an impulse_odd view of the odd counters.
SELECT a.counter AS left_count, b.counter AS right_count
FROM impulse AS a
JOIN (SELECT * FROM impulse WHERE counter % 2 = 1) AS b ON a.counter = b.counter
