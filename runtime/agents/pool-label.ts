/** The label of an agent that names the pool its runs go to; `local` means the embedded node. */
export const POOL_LABEL = 'waybill.pool'
export const EMBEDDED_POOL = 'local'

/** Whether its runs go to a pool of nodes, and nowhere else. */
export const namesPool = (labels: Readonly<Record<string, string>>): boolean =>
  labels[POOL_LABEL] !== undefined && labels[POOL_LABEL] !== EMBEDDED_POOL
