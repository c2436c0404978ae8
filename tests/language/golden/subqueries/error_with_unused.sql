WITH a AS (SELECT gone FROM flights) SELECT carrier FROM flights
