SELECT f.dest FROM flights f, weather w WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY f.dest
