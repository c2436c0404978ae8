SELECT * FROM store1 WITH PREFERENCE price * SUMMARY.Estimate.Count(itemno)
