SELECT RSTREAM(itemno) FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
