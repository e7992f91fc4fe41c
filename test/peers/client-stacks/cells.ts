/**
 * What is tried with each client: the cells of the table in docs/client-applications.md. The contents are text, because a SOAP
 * message can carry nothing else; Base64 of random bytes, so that a piece that is left out or repeated shows.
 */
import { contentOf } from '../../support/witness.ts';

export const CELLS = ['get', 'post', 'up', 'down', 'sse', 'keep-alive'] as const;
export type Cell = (typeof CELLS)[number];

/** How the application names the sidecar: as the base URL of the API, or as its proxy for `http:` URLs. */
export const WAYS = ['direct', 'proxy'] as const;
export type Way = (typeof WAYS)[number];

/** Calls in the cell `keep-alive`. */
export const KEPT_CALLS = 5;
/** Events in the cell `sse`. */
export const EVENTS = 3;

/** Bytes of the two long bodies. */
export interface BodySizes {
  readonly up: number;
  readonly down: number;
}

export interface Contents {
  /** Bodies of the requests, by cell. */
  readonly post: Buffer;
  readonly up: Buffer;
  /** Body of the response of the cell `down`. */
  readonly down: Buffer;
}

export function makeContents(sizes: BodySizes): Contents {
  return {
    post: Buffer.from('{"traveller":"Zoë Müller","days":14}'),
    up: textOf('up', sizes.up),
    down: textOf('down', sizes.down),
  };
}

function textOf(name: string, length: number): Buffer {
  return Buffer.from(contentOf(name, Math.ceil((length * 3) / 4)).toString('base64')).subarray(0, length);
}

/** A SOAP service with one operation, which takes a text and returns one. Its own address is the partner's. */
export const WSDL = `<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
  xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:tns="urn:quotes" name="Quotes" targetNamespace="urn:quotes">
  <message name="QuoteRequest"><part name="text" type="xsd:string"/></message>
  <message name="QuoteResponse"><part name="text" type="xsd:string"/></message>
  <portType name="QuotesPort">
    <operation name="quote"><input message="tns:QuoteRequest"/><output message="tns:QuoteResponse"/></operation>
  </portType>
  <binding name="QuotesBinding" type="tns:QuotesPort">
    <soap:binding style="rpc" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="quote">
      <soap:operation soapAction="urn:quotes#quote"/>
      <input><soap:body use="literal" namespace="urn:quotes"/></input>
      <output><soap:body use="literal" namespace="urn:quotes"/></output>
    </operation>
  </binding>
  <service name="Quotes">
    <port name="QuotesPort" binding="tns:QuotesBinding"><soap:address location="https://partner.test/sales/v1/quotes"/></port>
  </service>
</definitions>
`;

/** The SOAP message that returns a text. */
export function soapResponse(text: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(
      '<?xml version="1.0" encoding="UTF-8"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><q:quoteResponse xmlns:q="urn:quotes"><text>',
    ),
    text,
    Buffer.from('</text></q:quoteResponse></e:Body></e:Envelope>'),
  ]);
}
