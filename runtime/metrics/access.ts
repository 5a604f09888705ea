/** Who may read /metrics: anyone where only this machine can ask, else whoever holds the token. */
export type MetricsAccess = { open: true } | { open: false; token: string | undefined }
