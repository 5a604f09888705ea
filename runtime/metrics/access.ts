/** Who may read /metrics: a caller with the token; without a token every caller where only this machine can ask. */
export type MetricsAccess = { open: true } | { open: false; token: string | undefined }
