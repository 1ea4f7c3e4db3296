"""Another program's settings, changed because the person asked: the one place that writes where agents keep theirs."""
