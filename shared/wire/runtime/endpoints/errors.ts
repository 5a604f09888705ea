/** Statuses that every authenticated operation may answer: any takes no unknown parameter, and needs the store. */
export const LIST = [400, 401, 403, 500, 503] as const
export const ONE = [404, ...LIST] as const
export const BODY = [413, ...LIST] as const
export const BODY_OF_ONE = [413, ...ONE] as const
