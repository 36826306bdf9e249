/** The roles of test servers. */

/** The plain login role of `url`: not a superuser, without BYPASSRLS, owns no table. */
export const PLAIN_ROLE = 'app'
