ISTREAM ((SELECT carrier FROM flights) UNION ALL SELECT dest FROM flights) EMIT CHANGES INTO both_ends
