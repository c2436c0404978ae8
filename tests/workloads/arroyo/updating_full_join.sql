SELECT counter AS left_counter, counter_mod_2, right_count
FROM impulse
FULL JOIN (
    SELECT counter % 2 AS counter_mod_2, COUNT(*) AS right_count FROM impulse WHERE counter < 3 GROUP BY 1
) AS counts ON counter = right_count
WHERE counter < 3
