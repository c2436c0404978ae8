SELECT * FROM store1 WITH PREFERENCE prices.Estimate.Count(price) + prices_long.Estimate.Count(price)
