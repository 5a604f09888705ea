/** The label of an agent that names the pool its runs go to; `local` means the embedded node. */
export const POOL_LABEL = 'waybill.pool'
export const EMBEDDED_POOL = 'local'
