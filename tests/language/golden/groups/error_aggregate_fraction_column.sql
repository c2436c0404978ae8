SELECT APPROX_QUANTILE(delay, price) FROM flights
