package loadgen

const pinnedFingerprint = "fc27e99f1be81f45c692c9ce2b8adee4"
