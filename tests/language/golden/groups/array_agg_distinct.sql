SELECT carrier, ARRAY_AGG(DISTINCT dest), ARRAY_AGG(DISTINCT flight ORDER BY flight DESC) FILTER (WHERE delay > 1) AS f FROM flights GROUP BY carrier
