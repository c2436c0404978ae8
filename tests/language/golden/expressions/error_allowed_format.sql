SELECT dest FROM flights WITH (format = 'diff')
