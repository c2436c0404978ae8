-- The exchange is a function in Python.
SELECT item, DOLLAR_TO_EURO(price) AS price, bidder, ts FROM bid [NOW]
