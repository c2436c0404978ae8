SELECT 'test' AS a, value->'driver_id' AS b, value->'event_type' AS c, value->'not_a_field' AS d FROM texts
