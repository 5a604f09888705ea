/** Who may read /metrics: every caller where only this machine can ask, else a caller with the token. */
export type MetricsAccess = { open: true } | { open: false; token: string | undefined }
