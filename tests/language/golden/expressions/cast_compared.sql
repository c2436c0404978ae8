SELECT carrier FROM flights WHERE flight::BIGINT < 5
