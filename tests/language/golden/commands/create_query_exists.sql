CREATE QUERY IF NOT EXISTS "late-flights" AS (SELECT carrier FROM flights);
