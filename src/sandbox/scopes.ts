/**
 * The scope names that were seen at the real service, with `example` in the vendor's place.
 */

/** Needed to buy a policy and to read it back. */
export const POLICIES_SCOPE = 'urn:example.partners.sales.individual.travel.policies.write';

/** Needed to ask for a quote. */
export const QUOTES_SCOPE = 'urn:example.partners.sales.individual.travel.quotesrequests.write';

/** Every scope that the sandbox knows. */
export const KNOWN_SCOPES: readonly string[] = [POLICIES_SCOPE, QUOTES_SCOPE];
