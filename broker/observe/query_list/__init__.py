"""The list of all queries: searched, filtered, sorted, paged and grouped from columns."""
