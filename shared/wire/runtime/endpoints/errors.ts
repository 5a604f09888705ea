/** Statuses that every authenticated operation may answer. */
export const READ = [401, 403, 500] as const
export const LIST = [400, ...READ] as const
export const ONE = [401, 403, 404, 500] as const
export const BODY = [400, 401, 403, 413, 500, 503] as const
export const BODY_OF_ONE = [400, 401, 403, 404, 413, 500, 503] as const
