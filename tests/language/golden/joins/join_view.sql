SELECT l.twice, g.dest FROM late l JOIN flights g ON l.carrier = g.carrier AND l.twice > g.delay
