SELECT 1 FROM flights a, flights b, flights c, flights d, flights e, flights f, flights g, flights h, weather
