SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
