SELECT * FROM store1 WITH PREFERENCE prices_long.Estimate.Count(price) WINDOW 90 MINUTES
