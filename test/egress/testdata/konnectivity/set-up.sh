# The page "Set up Konnectivity service" of Kubernetes' documentation, as far as a shell does it: the
# certificate and the kubeconfig file of the server, and its objects. In PKI are the authority of the
# cluster, in CONF the kubeconfig file is made, in OBJECTS are the objects.
set -eu
openssl req -subj "/CN=system:konnectivity-server" -new -newkey rsa:2048 -nodes -out konnectivity.csr -keyout konnectivity.key
openssl x509 -req -in konnectivity.csr -CA "$PKI/ca.crt" -CAkey "$PKI/ca.pem" -CAcreateserial -CAserial konnectivity.srl -out konnectivity.crt -days 375 -sha256
SERVER=$("$KUBECTL" config view -o jsonpath='{.clusters..server}')
"$KUBECTL" --kubeconfig "$CONF" config set-credentials system:konnectivity-server --client-certificate konnectivity.crt --client-key konnectivity.key --embed-certs=true
"$KUBECTL" --kubeconfig "$CONF" config set-cluster kubernetes --server "$SERVER" --certificate-authority "$PKI/ca.crt" --embed-certs=true
"$KUBECTL" --kubeconfig "$CONF" config set-context system:konnectivity-server@kubernetes --cluster kubernetes --user system:konnectivity-server
"$KUBECTL" --kubeconfig "$CONF" config use-context system:konnectivity-server@kubernetes
rm -f konnectivity.crt konnectivity.key konnectivity.csr
"$KUBECTL" apply -f "$OBJECTS"
