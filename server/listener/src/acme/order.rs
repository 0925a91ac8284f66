//! Order of one certificate: creation, validation, issuance.
//!
//! Non-goals: the account; use of the certificate.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};

use super::error::AcmeError;
use super::limits;
use crate::tls::{AlpnChallenges, TlsConfigCell, TlsIdentity};

/// Polling of the certification authority.
const POLLS: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(250)).timeout(limits::CHALLENGE_TIMEOUT);

/// Obtains a certificate for these names, in PEM: the chain, and the key. Until then `tls` serves the challenge
/// certificates, and `own` to all other clients.
pub(super) async fn order(
    account: &Account,
    names: &[String],
    own: Option<&TlsIdentity>,
    tls: &TlsConfigCell,
) -> Result<(String, String), AcmeError> {
    let names: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await?;
    prove(&mut order, own, tls).await?;
    match order.poll_ready(&POLLS).await {
        Ok(OrderStatus::Ready) => {}
        Ok(_) => return Err(refused(&mut order, AcmeError::new("the ACME order is invalid")).await),
        Err(Error::Api(problem)) => {
            return Err(refused(&mut order, AcmeError::from_acme(&problem, None)).await);
        }
        Err(error) => return Err(error.into()),
    }
    let key = order.finalize().await?;
    Ok((order.poll_certificate(&POLLS).await?, key))
}

/// Installs the challenge certificates of the names that are not validated yet, and reports each as ready.
async fn prove(
    order: &mut Order,
    own: Option<&TlsIdentity>,
    tls: &TlsConfigCell,
) -> Result<(), AcmeError> {
    let mut proofs = AlpnChallenges::default();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let name = authorization.identifier().to_string();
        let Some(mut challenge) = authorization.challenge(ChallengeType::TlsAlpn01) else {
            let why = "the ACME server does not offer the TLS-ALPN-01 challenge, the only one \
                that is supported";
            return Err(AcmeError::new(format!("{name}: {why}")));
        };
        let digest = challenge.key_authorization().digest();
        proofs.add(&name, digest.as_ref()).map_err(AcmeError::new)?;
        tls.with_challenges(own, &proofs).map_err(AcmeError::new)?;
        challenge.set_ready().await?;
    }
    Ok(())
}

/// Returns the error of a rejected order, preferably that of one of its names.
async fn refused(order: &mut Order, otherwise: AcmeError) -> AcmeError {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        if let Some(problem) = authorization.challenges.iter().find_map(|it| it.error.as_ref()) {
            return AcmeError::from_acme(problem, Some(&name));
        }
    }
    otherwise
}
