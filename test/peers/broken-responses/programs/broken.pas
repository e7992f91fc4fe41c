{ Arguments and output: test/peers/broken-responses/clients.ts. }
program broken;
{$mode objfpc}{$H+}
uses Classes, SysUtils, fphttpclient;
var
  At: Integer;
  Body: TMemoryStream;
  Error: String;
begin
  for At := 3 to ParamCount do
  begin
    Body := TMemoryStream.Create;
    Error := '';
    try
      TFPHTTPClient.SimpleGet(ParamStr(2) + ParamStr(At), Body);
    except
      on Thrown: Exception do Error := Thrown.ClassName;
    end;
    WriteLn('{"path":"', ParamStr(At), '","bytes":', Body.Size, ',"error":"', Error, '"}');
    Body.Free;
  end;
end.
