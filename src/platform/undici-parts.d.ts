declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici';
  export default Client;
}

declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';
  /** A method of dispatchers when all of undici is loaded. */
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>;
}

declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export default buildConnector;
}

declare module 'undici/lib/core/symbols.js' {
  /** Internal properties: a client's connection, and a connection's parser. */
  const symbols: { readonly kSocket: unique symbol; readonly kParser: unique symbol };
  export default symbols;
}

declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici';
  export default errors;
}
