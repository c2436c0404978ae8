-- a member that is not there is NULL here, and null as JSON there
SELECT 'test' AS a, value->'driver_id' AS b, value->'event_type' AS c, COALESCE(CAST(value->'not_a_field' AS STRING), 'null') AS d FROM texts
