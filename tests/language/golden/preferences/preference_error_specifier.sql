SELECT * FROM store1 WITH PREFERENCE downward SUMMARY.Estimate.Count(itemno)
