/** How the client of one request sees its route's upstream; what follows from it for header values is upstream/headers.ts's. */
import type { ClientView } from '../upstream/client-view.ts';
import type { Exchange, ExchangeParts } from './exchange.ts';

/** The view for the response to a request. */
export function describeClientView(
  { baseUrl, clientPath, cookieRoot }: Pick<ExchangeParts, 'baseUrl' | 'clientPath' | 'cookieRoot'>,
  request: Pick<Exchange, 'path' | 'clientPath'>,
): ClientView {
  return {
    baseUrl,
    requestPath: request.path,
    clientPath: request.clientPath ?? clientPath,
    cookieRoot,
  };
}
