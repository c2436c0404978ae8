SELECT * FROM store1 WITH PREFERENCE 'a' || SUMMARY.Estimate.Count(itemno)
