/** The roles of test servers. */

/** The plain login role of `url`: no superuser, no BYPASSRLS, owns no table. */
export const PLAIN_ROLE = 'app'
