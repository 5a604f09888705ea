/** The tenant of the first owner and of the bootstrap key; it is always there. */
export const FIRST_TENANT = 'default'
